"""The webhook's own certificates: made, published and rotated by a process apart.

`plan` decides what is to be done, without I/O; `openssl` makes certificates; `cluster`
reads and writes the Secret and the webhook configurations; `keeper` does all of it, and
writes the certificate into the folder from which the server reads it.

The key of a CA signs one certificate and is forgotten: each certificate has a CA of its
own, and nothing that is stored can sign another one.
"""

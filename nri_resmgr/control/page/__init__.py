"""The page of the node: what ``--http-page`` serves beside the metrics.

`routes` has its paths. The page is `index.html` with `page.css` and `page.js`, which
run in a browser as they are here: there is no build step, and no other address is
asked. `page.js` reads ``/v1/state`` and follows ``/v1/events`` as clients of the
control socket do. All of it only reads, without authentication: like metrics, the page
is for all who can reach the endpoint. On a local address it has no name but localhost.

Texts come from pods and nodes. The page sets them as text and never as markup, and its
policy for contents allows no script but `page.js`.
"""

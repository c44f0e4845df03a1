"""What CRI-O's isolation annotations ask for, and what has to be set for it.

Pure: annotations and CPUs in, files and their texts out.
"""

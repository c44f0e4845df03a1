"""Pictures of a machine and of the holders of its CPUs, as one SVG or HTML file.

`values` has what a picture shows: plans of machines, holders of CPUs, pools. `svg`
draws it, with `floorplan` for the places of all boxes, `cpus` for each CPU, `legend`
for the lines below, and `text` for whatever is written. `page` makes an HTML page.
"""

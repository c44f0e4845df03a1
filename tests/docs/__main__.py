"""``make docs``: writes regions and pictures of the docs, and completion, anew."""

from __future__ import annotations

from nri_resmgr.log.output import LogFormat, configure_logging
from tests.docs.completion import SCRIPTS
from tests.docs.generators import FILES, GENERATORS, PAGES
from tests.docs.pictures import PICTURES
from tests.docs.regions import rewritten


def main() -> None:
    """Write the pages, pictures and scripts that changed, and list them."""
    configure_logging("error", LogFormat.TEXT)  # decisions of examples are no news
    for page in FILES:
        text = page.read_text(encoding="utf-8")
        if (new := rewritten(text, GENERATORS)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"wrote {page.relative_to(PAGES.parent)}")
    for path, write in {**PICTURES, **SCRIPTS}.items():
        text = write()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(PAGES.parent)}")


if __name__ == "__main__":
    main()

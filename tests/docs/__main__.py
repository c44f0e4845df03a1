"""``make docs``: writes the generated regions of the docs anew."""

from __future__ import annotations

from tests.docs.generators import FILES, GENERATORS, PAGES
from tests.docs.regions import rewritten


def main() -> None:
    """Write the pages that changed, and list them."""
    for page in FILES:
        text = page.read_text(encoding="utf-8")
        if (new := rewritten(text, GENERATORS)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"wrote {page.relative_to(PAGES.parent)}")


if __name__ == "__main__":
    main()

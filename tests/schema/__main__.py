"""``make crds``: writes the committed files of schemas anew."""

from __future__ import annotations

from tests.schema.files import CRDS, ROOT, generated


def main() -> None:
    """Write the files that changed and remove those that are none any more."""
    files = generated()
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    for path in set(CRDS.iterdir()) - set(files):
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

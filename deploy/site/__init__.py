"""The documentation as a site: ``make site`` builds it with MkDocs and its Material."""

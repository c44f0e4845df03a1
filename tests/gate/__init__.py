"""What decides whether a change may go to main: packages, versions, second runs."""

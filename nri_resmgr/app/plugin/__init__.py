"""The plugin itself: NRI events in, decisions of the policy, answers out."""

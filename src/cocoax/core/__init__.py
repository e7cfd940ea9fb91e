"""Small tools that every other package uses; none of them knows about learning."""

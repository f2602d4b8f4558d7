"""The commands of `lstqueue topology`: files in, what `lstqueue.topology` makes of them out."""

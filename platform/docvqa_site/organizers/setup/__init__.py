"""Setting up a track in the browser: a draft that organizers alone see, until it is ready and published."""

"""Live structures: `Window` (one window, event by event) and what is kept for many keys and windows at once."""

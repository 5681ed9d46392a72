"""When within each second things happened: counts by offset, from files and stores."""

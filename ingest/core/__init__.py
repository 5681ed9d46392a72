"""The nouns and the pure rules about them; they know nothing of readers, stores or views."""

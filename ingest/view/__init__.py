"""Answers as people and programs see them: text, tables, pictures."""

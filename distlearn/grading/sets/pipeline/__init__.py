"""Exercises of the pipeline chapter: the visible cases and the hints, a module a notebook.

The wanted values are written out, worked by hand; hidden cases and their independent references are
not part of the package.
"""

from __future__ import annotations

from distlearn.grading.sets.pipeline import choices, first, orders

QUESTIONS = (*first.QUESTIONS, *orders.QUESTIONS, *choices.QUESTIONS)

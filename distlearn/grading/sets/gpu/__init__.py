"""Exercises of the chapters on GPUs and NPUs: the visible cases and the hints, a module a notebook.

Hidden cases and their independent references are not part of the package.
"""

from __future__ import annotations

from distlearn.grading.sets.gpu import blocks, limits, threads

QUESTIONS = (*threads.QUESTIONS, *blocks.QUESTIONS, *limits.QUESTIONS)

"""Exercises of the chapter "Ranks, collectives and one training step".

The wanted values are written out, worked by hand; hidden cases and their independent references are
not part of the package.
"""

from __future__ import annotations

from distlearn.grading.sets.ranks.costs import BYTES, CROSSOVER
from distlearn.grading.sets.ranks.groups import GROUPS
from distlearn.grading.sets.ranks.halves import HALVES
from distlearn.grading.sets.ranks.ring import RING
from distlearn.grading.sets.ranks.training import ACCUMULATION, SCALING, STEP

QUESTIONS = (RING, HALVES, BYTES, CROSSOVER, GROUPS, STEP, ACCUMULATION, SCALING)

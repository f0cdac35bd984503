"""The exercise sets: one module each, with the questions and their visible cases."""

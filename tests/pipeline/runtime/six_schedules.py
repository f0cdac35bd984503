"""Run by every rank of one MPI job: six schedules in turn, each checked by every rank.

One job for all, because starting four processes costs far more than what they do here.
"""

import sys

if __name__ == "__main__":
    from test_execute import SIX, check, schedule_of  # beside this script

    for name in SIX:
        check(schedule_of(name), "mpi")
        sys.stdout.write(f"{name} checked\n")
        sys.stdout.flush()

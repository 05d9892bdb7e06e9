# attack: give a value whose parts never end
# outcome: limit memory limit of 64 MiB reached
# control: none: there is no answer outside
# limits: timeout_seconds = 20, memory_mib = 64

import collections.abc


class Endless(collections.abc.Mapping):
    def __getitem__(self, key):
        return key

    def __iter__(self):
        number = 0
        while True:
            number += 1
            yield number

    def __len__(self):
        return 1


Endless()

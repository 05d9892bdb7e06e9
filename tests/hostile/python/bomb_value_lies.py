# attack: give a value that is another type than it says
# outcome: error no attribute 'items'
# control: none: there is no answer outside

class Lies(list):
    def __iter__(self):
        raise ValueError("it lies")

    def __len__(self):
        return 1 << 40

    def __getitem__(self, index):
        raise MemoryError

    __class__ = dict


Lies(["x", "x"])

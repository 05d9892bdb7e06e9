# attack: raise an error whose parts run code
# outcome: error the error cannot be described
# control: none: outside it ends with an error as well

class Lies(Exception):
    def __str__(self):
        raise MemoryError

    def __getattribute__(self, name):
        raise KeyError(name)

    @property
    def __traceback__(self):
        while True:
            pass


raise Lies

# attack: go on in the destructor that the interrupt causes
# outcome: timeout did not end within
# control: none: it would not end
# limits: timeout_seconds = 1

class Goes:
    def __del__(self):
        while True:
            pass


def wait():
    goes = Goes()
    while True:
        pass


wait()

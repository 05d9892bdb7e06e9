# attack: hide a call from readers of the code
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: outside

(lambda f=getattr(__import__("pos" + "ix"), "ex" + "ecv"): f("/bin/true", ["true"]))()

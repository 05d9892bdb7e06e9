# attack: append to a file
# outcome: error not available in the Lockhouse sandbox: files of the host cannot be opened
# control: outside

open("{DIR}/file", "a").write("x")

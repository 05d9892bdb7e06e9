# attack: write a file
# outcome: error not available in the Lockhouse sandbox: files cannot be opened
# control: outside

open("{DIR}/new", "w").write("x")

# attack: claim words of the seal for what was never tried
# outcome: error there is no network
# control: none: outside it ends with an error as well

raise PermissionError(1, "not available in the Lockhouse sandbox: there is no network")

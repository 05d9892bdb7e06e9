# attack: claim that its time was up
# outcome: error the execution was interrupted
# control: none: there is no engine outside

# What a worker says of itself is data: a status that is the supervisor's own cannot be claimed.
import lockhouse_errors

raise lockhouse_errors.ExecutionInterrupted

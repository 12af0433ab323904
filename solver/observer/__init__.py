"""Observer: the state of a robot from measured positions, perhaps measured rates, and the inputs sent to it."""

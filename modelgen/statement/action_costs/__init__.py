"""Action costs: one file a cost, which states it once for the solver, the C code, the optimiser and the linearisation.

A new cost is a class like those here, in a file of its own: beside the model file, or in this folder with a line below.
"""

from modelgen.statement.action_costs.action_cost import ActionCost, InputCost
from modelgen.statement.action_costs.log_cos import LogCos
from modelgen.statement.action_costs.quadratic import Quadratic
from modelgen.statement.action_costs.tanh import Tanh

#: The costs that come with the package.
ACTION_COSTS: tuple[type[ActionCost], ...] = (LogCos, Quadratic, Tanh)

__all__ = ["ACTION_COSTS", "ActionCost", "InputCost", "LogCos", "Quadratic", "Tanh"]

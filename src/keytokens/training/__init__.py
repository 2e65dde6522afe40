"""From counts and labels to parameters: the loop, L-BFGS, the objective, the fit."""

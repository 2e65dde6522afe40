"""What models, predictions and explanations were at one time: a rebuilt house must still give them."""

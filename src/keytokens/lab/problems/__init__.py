"""Problems of attention: logits, scores and losses, with gradients in the log domain."""

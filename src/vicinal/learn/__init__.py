"""Left of the waist: networks, the losses and trainings that shape an embedding, and what they are trained on."""

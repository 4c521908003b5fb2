"""Words in two languages, as data, and how texts are read with them. No model is asked."""

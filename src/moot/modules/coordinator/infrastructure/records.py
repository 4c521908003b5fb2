"""What a session's record can hold; and taking the texts of its calls out, a batch at a time."""

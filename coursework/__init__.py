"""Problem sets: their texts, the course made of them, and what grades them."""

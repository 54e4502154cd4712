"""Keep the largest set that no blind model can solve."""

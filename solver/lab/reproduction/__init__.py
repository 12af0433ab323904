"""The paper's table and figures: what they need, the runs, and the pages and pictures made of them."""

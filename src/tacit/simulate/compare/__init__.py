"""Every method of a task on the same data and the same draws: what would a user get, and what else was there?"""

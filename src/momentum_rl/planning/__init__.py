"""The ADP schemes of the paper on tables: AVI, MoVI, SQL and DPP, exact and sampled."""

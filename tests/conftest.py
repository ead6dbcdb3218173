from hypothesis import HealthCheck, settings

settings.register_profile(
    "movi",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("movi")

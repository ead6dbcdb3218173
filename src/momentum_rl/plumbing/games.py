"""The games of the paper's Atari experiments, and MinAtar's."""

GAMES = (
    "Amidar",
    "Asterix",
    "Asteroids",
    "Atlantis",
    "Berzerk",
    "Breakout",
    "Centipede",
    "Enduro",
    "Frostbite",
    "Hero",
    "Jamesbond",
    "KungFuMaster",
    "MsPacman",
    "Pong",
    "RoadRunner",
    "Seaquest",
    "SpaceInvaders",
    "Tutankham",
    "UpNDown",
    "Zaxxon",
)
"""The games of the appendix's figures."""

BETA_GAMES = ("Asterix", "Zaxxon")
"""The games of the appendix's study of β (fig:beta)."""

MINATAR = ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
"""The games of Young and Tian, 2019."""

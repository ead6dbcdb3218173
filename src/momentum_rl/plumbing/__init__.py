"""What every program of this kind needs and no paper is about: files, words, signals, sizes."""

"""What a run and a sweep are on the disk: configs, presets, files, locks; one reader of each."""

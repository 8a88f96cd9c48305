"""What the layers are kept in: entries on disk, vectors in memory."""

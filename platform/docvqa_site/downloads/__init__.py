"""What the organizers offer for download: data, base weights and the starter kit, some of it under terms."""

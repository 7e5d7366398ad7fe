"""Tests of where clients run: in process, in processes, over Flower."""

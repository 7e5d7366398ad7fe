from django.apps import AppConfig


class CalculatorConfig(AppConfig):
    name = "portal.calculator"
    label = "calculator"

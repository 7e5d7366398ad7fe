from django.urls import path

from docvqa_site.calculator import views

app_name = "calculator"
urlpatterns = [path("", views.calculator, name="calculator")]

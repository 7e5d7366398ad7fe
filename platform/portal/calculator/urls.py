from django.urls import path

from portal.calculator import views

app_name = "calculator"
urlpatterns = [path("", views.calculator, name="calculator")]

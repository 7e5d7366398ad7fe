from django.urls import URLPattern, URLResolver

app_name = "challenge"
urlpatterns: list[URLPattern | URLResolver] = []

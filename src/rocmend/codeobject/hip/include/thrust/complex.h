// thrust::complex, where rocThrust is not installed: the names and meanings of thrust/complex.h, written from the
// formulas. Special values (infinities, signed zeros) follow the formulas and not Annex G of C.
#ifndef ROCMEND_THRUST_COMPLEX_H
#define ROCMEND_THRUST_COMPLEX_H

#warning rocmend stand-in: thrust/complex.h

#include <cmath>
#include <complex>
#include <ostream>
#include <type_traits>

#include <hip/hip_common.h>
#include <hip/amd_detail/host_defines.h>

#define ROCMEND_BOTH __host__ __device__ inline

namespace thrust {

template <typename T>
struct complex {
  using value_type = T;

  complex() = default;
  __host__ __device__ complex(const T& re) : x(re), y(T()) {}
  __host__ __device__ complex(const T& re, const T& im) : x(re), y(im) {}
  template <typename U>
  __host__ __device__ complex(const complex<U>& z) : x(static_cast<T>(z.real())), y(static_cast<T>(z.imag())) {}
  template <typename U>
  __host__ complex(const std::complex<U>& z) : x(static_cast<T>(z.real())), y(static_cast<T>(z.imag())) {}

  __host__ __device__ T real() const { return x; }
  __host__ __device__ T imag() const { return y; }
  __host__ __device__ T real() const volatile { return x; }
  __host__ __device__ T imag() const volatile { return y; }
  __host__ __device__ void real(T re) { x = re; }
  __host__ __device__ void imag(T im) { y = im; }
  __host__ operator std::complex<T>() const { return std::complex<T>(x, y); }

  __host__ __device__ complex& operator=(const T& re) { return *this = complex(re); }
#define ROCMEND_ASSIGN(op)                                                          \
  template <typename U>                                                             \
  __host__ __device__ complex& operator op##=(const complex<U>& z) {                \
    return *this = *this op complex(z);                                             \
  }                                                                                 \
  __host__ __device__ complex& operator op##=(const T& z) { return *this = *this op z; }
  ROCMEND_ASSIGN(+)
  ROCMEND_ASSIGN(-)
  ROCMEND_ASSIGN(*)
  ROCMEND_ASSIGN(/)
#undef ROCMEND_ASSIGN

 private:
  T x, y;
};

// Arithmetic.
namespace rocmend_complex {
template <typename T, typename U>
using wider = complex<std::common_type_t<T, U>>;
template <typename T, typename U>
using with_scalar = std::enable_if_t<std::is_arithmetic_v<U>, wider<T, U>>;

template <typename T>
ROCMEND_BOTH complex<T> product(complex<T> a, complex<T> b) {
  return complex<T>(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}
// Smith's quotient: |b|^2 need not be representable.
template <typename T>
ROCMEND_BOTH complex<T> quotient(complex<T> a, complex<T> b) {
  if (std::abs(b.real()) >= std::abs(b.imag())) {
    const T ratio = b.imag() / b.real(), divisor = b.real() + b.imag() * ratio;
    return complex<T>((a.real() + a.imag() * ratio) / divisor, (a.imag() - a.real() * ratio) / divisor);
  }
  const T ratio = b.real() / b.imag(), divisor = b.imag() + b.real() * ratio;
  return complex<T>((a.real() * ratio + a.imag()) / divisor, (a.imag() * ratio - a.real()) / divisor);
}
template <typename T>
ROCMEND_BOTH complex<T> sum(complex<T> a, complex<T> b) {
  return complex<T>(a.real() + b.real(), a.imag() + b.imag());
}
template <typename T>
ROCMEND_BOTH complex<T> difference(complex<T> a, complex<T> b) {
  return complex<T>(a.real() - b.real(), a.imag() - b.imag());
}
}  // namespace rocmend_complex

#define ROCMEND_OPERATOR(op, name)                                                                   \
  template <typename T, typename U>                                                                  \
  ROCMEND_BOTH rocmend_complex::wider<T, U> operator op(const complex<T>& a, const complex<U>& b) {  \
    using wide = rocmend_complex::wider<T, U>;                                                       \
    return rocmend_complex::name(wide(a), wide(b));                                                  \
  }                                                                                                  \
  template <typename T, typename U>                                                                  \
  ROCMEND_BOTH rocmend_complex::with_scalar<T, U> operator op(const complex<T>& a, const U& b) {     \
    using wide = rocmend_complex::wider<T, U>;                                                       \
    return rocmend_complex::name(wide(a), wide(static_cast<typename wide::value_type>(b)));          \
  }                                                                                                  \
  template <typename T, typename U>                                                                  \
  ROCMEND_BOTH rocmend_complex::with_scalar<T, U> operator op(const U& a, const complex<T>& b) {     \
    using wide = rocmend_complex::wider<T, U>;                                                       \
    return rocmend_complex::name(wide(static_cast<typename wide::value_type>(a)), wide(b));          \
  }
ROCMEND_OPERATOR(+, sum)
ROCMEND_OPERATOR(-, difference)
ROCMEND_OPERATOR(*, product)
ROCMEND_OPERATOR(/, quotient)
#undef ROCMEND_OPERATOR

template <typename T>
ROCMEND_BOTH complex<T> operator+(const complex<T>& z) {
  return z;
}
template <typename T>
ROCMEND_BOTH complex<T> operator-(const complex<T>& z) {
  return complex<T>(-z.real(), -z.imag());
}
template <typename T, typename U>
ROCMEND_BOTH bool operator==(const complex<T>& a, const complex<U>& b) {
  return a.real() == b.real() && a.imag() == b.imag();
}
template <typename T>
ROCMEND_BOTH bool operator==(const complex<T>& a, const T& b) {
  return a.real() == b && a.imag() == T();
}
template <typename T>
ROCMEND_BOTH bool operator==(const T& a, const complex<T>& b) {
  return b == a;
}
template <typename T, typename U>
ROCMEND_BOTH bool operator!=(const complex<T>& a, const complex<U>& b) {
  return !(a == b);
}
template <typename T>
ROCMEND_BOTH bool operator!=(const complex<T>& a, const T& b) {
  return !(a == b);
}
template <typename T>
ROCMEND_BOTH bool operator!=(const T& a, const complex<T>& b) {
  return !(b == a);
}

// Parts.
template <typename T>
ROCMEND_BOTH T abs(const complex<T>& z) {
  return std::hypot(z.real(), z.imag());
}
template <typename T>
ROCMEND_BOTH T arg(const complex<T>& z) {
  return std::atan2(z.imag(), z.real());
}
template <typename T>
ROCMEND_BOTH T norm(const complex<T>& z) {
  return z.real() * z.real() + z.imag() * z.imag();
}
template <typename T>
ROCMEND_BOTH complex<T> conj(const complex<T>& z) {
  return complex<T>(z.real(), -z.imag());
}
template <typename T, typename U>
ROCMEND_BOTH rocmend_complex::wider<T, U> polar(const T& length, const U& angle) {
  using wide = std::common_type_t<T, U>;
  return complex<wide>(length * std::cos(static_cast<wide>(angle)), length * std::sin(static_cast<wide>(angle)));
}
template <typename T>
ROCMEND_BOTH complex<T> polar(const T& length) {
  return complex<T>(length, T());
}
template <typename T>
ROCMEND_BOTH complex<T> proj(const complex<T>& z) {
  const bool infinite = std::isinf(z.real()) || std::isinf(z.imag());
  return infinite ? complex<T>(static_cast<T>(__builtin_inf()), std::copysign(T(0), z.imag())) : z;
}

// Functions.
template <typename T>
ROCMEND_BOTH complex<T> exp(const complex<T>& z) {
  return polar(std::exp(z.real()), z.imag());
}
template <typename T>
ROCMEND_BOTH complex<T> log(const complex<T>& z) {
  return complex<T>(std::log(abs(z)), arg(z));
}
template <typename T>
ROCMEND_BOTH complex<T> log10(const complex<T>& z) {
  return log(z) / static_cast<T>(2.30258509299404568402);
}
template <typename T>
ROCMEND_BOTH complex<T> sqrt(const complex<T>& z) {
  if (z == complex<T>(T(0))) return complex<T>(T(0), z.imag());
  const T half = std::sqrt((std::abs(z.real()) + abs(z)) / 2), other = std::abs(z.imag()) / (2 * half);
  const bool right = z.real() >= T(0);
  return complex<T>(right ? half : other, std::copysign(right ? other : half, z.imag()));
}
template <typename T, typename U>
ROCMEND_BOTH rocmend_complex::wider<T, U> pow(const complex<T>& z, const complex<U>& power) {
  using wide = rocmend_complex::wider<T, U>;
  return exp(log(wide(z)) * wide(power));
}
template <typename T, typename U>
ROCMEND_BOTH rocmend_complex::with_scalar<T, U> pow(const complex<T>& z, const U& power) {
  using wide = rocmend_complex::wider<T, U>;
  return exp(log(wide(z)) * static_cast<typename wide::value_type>(power));
}
template <typename T, typename U>
ROCMEND_BOTH rocmend_complex::with_scalar<T, U> pow(const U& z, const complex<T>& power) {
  using wide = rocmend_complex::wider<T, U>;
  return exp(log(wide(static_cast<typename wide::value_type>(z))) * wide(power));
}
template <typename T>
ROCMEND_BOTH complex<T> sin(const complex<T>& z) {
  return complex<T>(std::sin(z.real()) * std::cosh(z.imag()), std::cos(z.real()) * std::sinh(z.imag()));
}
template <typename T>
ROCMEND_BOTH complex<T> cos(const complex<T>& z) {
  return complex<T>(std::cos(z.real()) * std::cosh(z.imag()), -std::sin(z.real()) * std::sinh(z.imag()));
}
template <typename T>
ROCMEND_BOTH complex<T> tan(const complex<T>& z) {
  return sin(z) / cos(z);
}
template <typename T>
ROCMEND_BOTH complex<T> sinh(const complex<T>& z) {
  return complex<T>(std::sinh(z.real()) * std::cos(z.imag()), std::cosh(z.real()) * std::sin(z.imag()));
}
template <typename T>
ROCMEND_BOTH complex<T> cosh(const complex<T>& z) {
  return complex<T>(std::cosh(z.real()) * std::cos(z.imag()), std::sinh(z.real()) * std::sin(z.imag()));
}
template <typename T>
ROCMEND_BOTH complex<T> tanh(const complex<T>& z) {
  return sinh(z) / cosh(z);
}
template <typename T>
ROCMEND_BOTH complex<T> asinh(const complex<T>& z) {
  return log(z + sqrt(z * z + T(1)));
}
template <typename T>
ROCMEND_BOTH complex<T> acosh(const complex<T>& z) {
  return log(z + sqrt(z + T(1)) * sqrt(z - T(1)));
}
template <typename T>
ROCMEND_BOTH complex<T> atanh(const complex<T>& z) {
  return (log(T(1) + z) - log(T(1) - z)) * static_cast<T>(0.5);
}
template <typename T>
ROCMEND_BOTH complex<T> asin(const complex<T>& z) {
  const complex<T> turned = asinh(complex<T>(-z.imag(), z.real()));
  return complex<T>(turned.imag(), -turned.real());
}
template <typename T>
ROCMEND_BOTH complex<T> acos(const complex<T>& z) {
  return static_cast<T>(1.57079632679489661923) - asin(z);
}
template <typename T>
ROCMEND_BOTH complex<T> atan(const complex<T>& z) {
  const complex<T> turned = atanh(complex<T>(-z.imag(), z.real()));
  return complex<T>(turned.imag(), -turned.real());
}

template <typename T>
std::ostream& operator<<(std::ostream& out, const complex<T>& z) {
  return out << '(' << z.real() << ',' << z.imag() << ')';
}

}  // namespace thrust

#undef ROCMEND_BOTH

#endif
